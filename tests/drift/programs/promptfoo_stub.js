// A provider for promptfoo that answers with a colour by the number in the question, and fails where it has none.
class Stub {
  constructor(options) {
    this.options = options || {};
  }

  id() {
    return this.options.id || 'stub';
  }

  async callApi(prompt, context) {
    const number = parseInt(String(context.vars.question).replace(/[^0-9]/g, ''), 10);
    if (Number.isNaN(number)) {
      return { error: 'the stub fails' };
    }
    return { output: ['red', 'green', 'blue'][(number + (this.options.config || {}).shift) % 3] };
  }
}

module.exports = Stub;
