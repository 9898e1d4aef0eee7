"""The words among which an evaluation chooses, said once for the command line, plans, templates, models and servers."""

METHODS = ("letters", "loglikelihood", "generation")
"""How answers are found."""
CONDITIONS = ("full", "answer_only")
"""Whether the question is shown."""
LABELS = ("letters", "digits", "words")
"""What options are called."""
SHOTS = ("fixed", "per-prompt")
"""Which worked examples are shown."""
ANSWER_ONLY_SHOTS = ("none", "blank", "full")
"""What worked examples become where the question is withheld."""
TOO_LONG = ("refuse", "skip", "cut")
"""What becomes of prompts that do not fit."""
ERRORED = ("missing", "wrong")
"""What prompts count as that got no answer in the end."""
APIS = ("auto", "completions", "chat")
"""Which of a server's ways is taken."""
DTYPES = ("float32", "bfloat16", "float16")
"""How the numbers of a model are kept."""
