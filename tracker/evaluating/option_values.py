"""Allowed values of evaluation options, declared once for the command line, plans, templates and servers."""

METHODS = ("letters", "loglikelihood", "generation")
"""How a model answers."""
CONDITIONS = ("full", "answer_only")
"""Whether the question is shown."""
LABELS = ("letters", "digits", "words")
"""How options are labelled."""
EXAMPLE_CHOICES = ("fixed", "per-prompt")
"""Which few-shot examples are shown."""
ANSWER_ONLY_EXAMPLES = ("none", "blank", "full")
"""How few-shot examples are shown if the question is withheld."""
TOO_LONG_ACTIONS = ("refuse", "skip", "cut")
"""How prompts that do not fit are treated."""
ERRORED_VALUES = ("missing", "wrong")
"""How prompts without an answer are scored in the end."""
APIS = ("auto", "completions", "chat")
"""Which API of a server is used."""
JUDGE_TEMPLATES = ("correct", "score")
"""Built-in rubrics of judges."""
ENGINES = ("auto", "transformers", "vllm", "server")
"""What computes a model's responses."""
DTYPES = ("float32", "bfloat16", "float16")
"""Data types of a model's weights."""
