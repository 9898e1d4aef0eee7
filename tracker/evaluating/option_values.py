"""The values that options of an evaluation can take, declared once for command line, plans, templates and servers."""

METHODS = ("letters", "loglikelihood", "generation")
"""How answers are found."""
CONDITIONS = ("full", "answer_only")
"""Whether the question is shown."""
LABELS = ("letters", "digits", "words")
"""What options are called."""
EXAMPLE_CHOICES = ("fixed", "per-prompt")
"""Which worked examples are shown."""
ANSWER_ONLY_EXAMPLES = ("none", "blank", "full")
"""What worked examples become where the question is withheld."""
TOO_LONG_ACTIONS = ("refuse", "skip", "cut")
"""What becomes of prompts that do not fit."""
ERRORED_VALUES = ("missing", "wrong")
"""What prompts count as that got no answer in the end."""
APIS = ("auto", "completions", "chat")
"""Which of a server's ways is taken."""
DTYPES = ("float32", "bfloat16", "float16")
"""How the numbers of a model are kept."""
