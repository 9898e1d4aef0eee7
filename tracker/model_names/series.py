"""Series and sizes in the names of models."""

from __future__ import annotations

import re

MODEL_FAMILIES = re.compile(
    r"(?:^|[/_\s\-(])(?:"
    r"gpt|chatgpt|o[134](?=-|$)|claude|gemini|gemma|palm|bard|llama|codellama|alpaca|vicuna|koala|mistral|mixtral|mathstral|"
    r"ministral|codestral|pixtral|magistral|qwen|qwq|qvq|yi(?=-|$)|deepseek|phi(?=[\s\-_\d]|$)|falcon|bloomz?|"
    r"opt(?=-|$)|mpt|"
    r"pythia|dolly|redpajama|stablelm|stable|starcoder|santacoder|wizard\w*|orca|zephyr|tulu|olmo|command|aya|cohere|"
    r"jamba|jurassic|j[12](?=-)|grok|nova|titan|granite|nemotron|dbrx|arctic|internlm|baichuan|chatglm|glm|minicpm|"
    r"smollm|solar|nous|hermes|openchat|openhermes|starling|platypus|guanaco|xgen|rwkv|mamba|t5|flan|mt0|ul2|bert|"
    r"roberta|albert|electra|deberta|xlnet|ernie|bart|pegasus|text-davinci|davinci|curie|babbage|(?:text-)?ada-\d|"
    r"turing|chinchilla|gopher|lamda|luminous|airoboros|manticore|samantha|kimi|moonshot|doubao|hunyuan|minimax|"
    r"exaone|reka|inflection|sonar|bge|gte|gtr|voyage|instructor|minilm|sbert|glove|sfr|dall-e|dalle|midjourney|"
    r"imagen|sdxl|eurollm|salamandra|viking|poro|teuken|apertus|stripedhyena|recurrentgemma|openelm|zamba|lfm|"
    r"fusechat|fugaku|plamo|rakuten|sarvam|seallm|sailor|typhoon|jais|acegpt|amber|crystal|k2(?=-|$)|molmo|llava|"
    r"internvl|idefics|fuyu|paligemma|cogvlm|minigpt|gpt-?neox?|gpt-?j|cerebras|xverse|skywork|aquila|tigerbot|"
    r"model(?=[\s_\-]?\d)|text-[a-z]+-\d{3}|openjourney|dreamlike|vintedois|safe stable|cogview|multifusion|"
    r"gigagan|minde|nullmodel"
    r")",
    re.I,
)
MODEL_SIZES = re.compile(r"(?<![a-z0-9])(?:\d+x)?\d+(?:\.\d+)?[bm](?![a-z0-9])", re.I)
SERIES_OF = {
    **dict.fromkeys(("mixtral", "mathstral", "ministral", "codestral", "pixtral", "magistral"), "mistral"),
    **dict.fromkeys(("qwq", "qvq"), "qwen"),
    **dict.fromkeys(("codellama",), "llama"),
    **dict.fromkeys(("chatgpt",), "gpt"),
    **dict.fromkeys(("paligemma", "recurrentgemma"), "gemma"),
    **dict.fromkeys(("bloomz",), "bloom"),
    **dict.fromkeys(("openhermes",), "hermes"),
}
"""Series whose models are variants of another series."""
GENERIC = frozenset({"model", "baseline", "system", "candidate", "run", "llm", "random", "human"})
"""Words that name no series."""
QUALIFIER = re.compile(
    r"^(?:(?:\d+x)?\d+(?:\.\d+)?[bmk]|v\d+(?:\.\d+)*|(?:19|20)\d\d(?:\d\d){0,2}|(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])|"
    r"instruct|chat|sft|dpo|rlhf|orpo|kto|gguf|awq|gptq|exl2|[48]bit|int[48]|fp8|fp16|bf16|bnb|turbo|preview|latest|"
    r"base|hf|it|lora|qlora|finetuned?|ft|merged|distill|mini|nano|micro|tiny|small|medium|large|xl|xxl|flash|pro|"
    r"ultra|opus|sonnet|haiku|thinking|reasoning)$",
    re.I,
)
"""Parts of a name in which models of one series differ: size, date, version, training, format."""
RUN_MARK = re.compile(r"(?: \(run \d+\)|#\d+)$")
DATE = re.compile(r"[-_ ](?:19|20)\d\d-\d\d-\d\d(?=[-_ ]|$)")


def find_series(name: str) -> str:
    """Return the series of a model by its name: ``llama`` for ``meta-llama/Llama-3.1-8B-Instruct``.

    The organization does not count. A name without a known series keeps what is left without sizes, dates, versions,
    and words such as ``instruct``; a name of nothing else is a separate series.
    """
    whole = RUN_MARK.sub("", name.strip())
    plain = whole.rpartition("/")[2].rpartition("__")[2]
    match = MODEL_FAMILIES.search(plain)
    if match is not None:
        word = match.group().strip("/_- (").casefold()
        if word not in GENERIC:
            return SERIES_OF.get(word, word)
    parts = [part for part in re.split(r"[-_ :]+", DATE.sub("", plain)) if part]
    stem = [part for part in parts if not QUALIFIER.match(part)]
    is_name = any(any(map(str.isalpha, part)) and part.casefold() not in GENERIC for part in stem)
    return "-".join(stem).casefold() if is_name else whole.casefold()
