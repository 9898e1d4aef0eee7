"""Words in the names of models, tasks, prompts and side columns."""

from __future__ import annotations

import re

MODEL_SUFFIXES = re.compile(
    r"[\-_ ](?:instruct|chat|sft|dpo|rlhf|orpo|gguf|awq|gptq|exl2|[48]bit|fp8|bnb|turbo|preview|base|hf|it|lora|qlora|"
    r"finetuned?|ft|merged|mini|nano|flash|pro|ultra|opus|sonnet|haiku|large|small|xl|xxl|v\d+(?:\.\d+)*)"
    r"(?:[\-_ ][\w.]+)?$",
    re.I,
)
MODEL_PLACEHOLDERS = re.compile(
    r"^(?:(?:random|majority|baseline|ours?|oracle|chance)(?:[\s_\-(].*)?|humans?(?:[\s_\-(].*"
    r"(?:baselines?|level|experts?|performance|average|avg|annotators?)\)?)?)$",
    re.I,
)

BASELINES = re.compile(
    r"^(?:average|avg\.?|non-expert|expert)?[\s_\-]*(?:random|majority|chance|oracle|humans?)(?:[\s_\-(]+(?:baselines?|"
    r"guess\w*|choice|chance|class|voting|levels?|experts?|performance|average|avg|annotators?|score|agreement|rate|best|"
    r"mean|n\s*=|\d)\b.*)?$",
    re.I,
)
"""Names of rows beside models that are no models, such as ``Random baseline`` and ``Human expert``."""

TASK_NAMES = re.compile(
    r"(?:^|[^a-z])(?:"
    r"mmlu|gsm|arc(?=[\s_\-(]|$)|hellaswag|truthful_?qa|wino\w*|bool_?q|piqa|siqa|social_?iqa|"
    r"human[_ \-]?eval|mbpp|bbh|"
    r"big[_ \-]?bench|math(?=[\s_\-(]|$|\d)|gpqa|if_?eval|drop|squad|natural_?q\w*|nq|trivia_?qa|race|copa|cb|rte|wic|"
    r"wsc|multirc|record|cola|sst-?2?|mrpc|sts-?[b\d]*|qqp|qnli|wnli|x?mnli|xnli|anli|snli|cnn|xsum|imdb|"
    r"civil_?comments|"
    r"raft|ms[_ ]?marco|csqa|commonsense_?qa|openbook_?qa|obqa|lambada|wikitext|ptb|agi_?eval|c-?eval|cmmlu|mgsm|"
    r"flores|wmt\d*|swe[_ \-]?bench|live[_ \-]?code\w*|livebench|aime|amc|musr|bfcl|mt[_ \-]?bench|arena\w*|"
    r"alpaca_?eval|wildbench|simple_?qa|hle|mmmu|docvqa|chartqa|mathvista|textvqa|vqa|ai2d|quac|narrative_?qa|qasper|"
    r"tydi\w*|xquad|xcopa|xstory\w*|belebele|logiqa|reclor|sciq|medqa|medmcqa|pubmed_?qa|bbq|crows\w*|toxi\w*|"
    r"hendrycks\w*|harness\|.*|super_?glue|glue|mteb|beir|ndcg|ruler|longbench|needle|babilong|theoremqa|olympiad\w*|"
    r"minerva\w*|aqua|svamp|asdiv|mawps|multi_?arith|apps|codeforces|spider|bird|ds-?1000|multipl-?e|cruxeval|"
    r"bigcodebench|repobench|kmmlu|tmmlu|hae-?rae|e-?eval|webarena|osworld|gaia|tau-?bench|agentbench|toolbench|"
    r"frontiermath|arc-?agi|cifar\w*|caltech\w*|imagenet\w*|flowers\d*|eurosat|svhn|dtd|clevr\w*|kitti\w*|coco|"
    r"ms-coco|drawbench|partiprompts|conll\w*|ontonotes|paws\w*|samsum|bioasq|legalbench|"
    r"classification|clustering|reranking|retrieval|summari[sz]ation|translation|reasoning|comprehension|"
    r"understanding|deduction|arithmetic|knowledge|coding|safety|toxicity|helpfulness|harmlessness|instruction[_ ]?\w*|"
    r"algebra|geometry|calculus|anatomy|astronomy|biology|chemistry|physics|economics|history|law|philosophy|"
    r"psychology|business|engineering|health|medicine|genetics|statistics|sociology|virology|geography|accounting|"
    r"marketing|nutrition|machine_learning|computer_science|jurisprudence|prehistory|writing|roleplay|extraction|stem|"
    r"humanities|social[_ ]sciences?|bleu|rouge(?:-?\w)?|chrf|comet|meteor|exact[_ ]match|pass@\d+|win[_ ]?rate|"
    r"accuracy|acc|f1|em|perplexity|elo"
    r")(?=$|[^a-z])",
    re.I,
)
TASK_SETTINGS = re.compile(
    r"\d+[\s\-]?shots?\b|\b(?:cot|zero|few)[\s\-]?shot|\((?:em|f1|acc\w*|pass@\d+|maj\d*)\)", re.I
)

PROMPT_NAMES = re.compile(
    r"^(?:(?:q|p|ex|item|prompt|question|ques|instance|sample|doc|example|row|id|problem|case)"
    r"[\s_\-#/.]*\d+|#?\d+|\d+\.0|[0-9a-f]{8,64}|[0-9a-f]{8}-[0-9a-f-]{27}|[\w.\-]+[/#:]\d+|"
    r"[a-z]+(?:[_\-]+[a-z]+)*[_\-/:#.]0*\d{3,})$",
    re.I,
)
PROMPT_TEXT = re.compile(
    r"\?[\s\"')]*$|^(?:\S+\s+){7,}\S+[.!:]$|^(?:who|what|when|where|why|how|which|is|are|does|do|can)\s(?:\S+\s+){2,}",
    re.I | re.S,
)

MODEL_HEADINGS = frozenset(
    ("model", "models", "llm", "llms", "模型", "模型名称", "モデル", "モデル名", "모델", "모델명")
)
MODEL_HEADING_PARTS = frozenset(
    ("name", "names", "id", "adapter", "adapters", "version", "alias", "path", "under", "test", "evaluated", "tested",
     "language", "the", "label", "key", "system", "or", "checkpoint", "full", "hf", "base", "lm", "eval", "ml", "ai")
)  # fmt: skip
WEAK_MODEL_HEADINGS = frozenset(
    ("name", "system", "systems", "method", "methods", "approach", "run", "run_name", "adapter", "entry", "submission",
     "agent", "team", "participant", "contestant", "candidate", "checkpoint", "engine", "network", "assistant",
     "chatbot", "bot", "competitor", "player", "algorithm", "setup", "configuration", "config", "label", "encoder",
     "variant", "deployment", "provider/model")
)  # fmt: skip
WEAK_PROMPT_HEADINGS = frozenset(("id", "key", "item", "idx", "index", "prompt", "uid", "case", "example", "instance"))
TASK_HEADINGS = frozenset(
    ("task", "tasks", "benchmark", "benchmarks", "dataset", "datasets", "data_set", "subset", "subject", "scenario",
     "domain", "category", "task_name", "benchmark_name", "eval", "evaluation", "exam", "test", "suite", "subtask",
     "skill", "area", "topic", "capability", "metric", "metrics", "language", "section", "track", "test_set")
)  # fmt: skip
PROMPT_DETAILS = frozenset(
    ("difficulty", "level", "grade_level", "source", "language", "lang", "type", "format", "year", "length", "n_tokens",
     "n_words", "n_chars", "n_options", "num_options", "num_choices", "weight", "url", "author", "topic", "tags",
     "hash",
     "comment", "notes", "explanation", "rationale", "hint", "context", "passage", "title", "cluster", "group", "index",
     "idx", "row", "number", "n_hops", "hops", "page", "position", "seed", "date", "license", "version", "steps",
     "num_tokens", "tokens", "words", "chars", "num_words", "cot_content", "src", "answer_index", "answer_idx")
)  # fmt: skip

SUMMARIES = frozenset(
    ("average", "avg", "avg.", "mean", "overall", "total", "median", "macro_avg", "micro_avg", "macro_average",
     "micro_average", "weighted_average", "sum", "aggregate", "average_score", "avg_score", "mean_score",
     "overall_score", "total_score", "mean_win_rate", "average_accuracy", "avg_accuracy", "mean_accuracy",
     "global_average", "mean_(task)", "mean_(tasktype)", "mean_(task_type)", "average_of_tasks", "task_average",
     "average_rank", "avg_rank", "mean_rank", "average_(%)", "avg_(%)", "overall_average", "all", "overall_avg")
)  # fmt: skip
OUTCOME_WORDS = frozenset(
    ("match", "matches", "pass", "passes", "passed", "correct", "correctness", "success", "successful", "solved",
     "resolved", "reward", "acc", "accuracy", "em", "exact", "f1", "rating", "label", "status", "rate", "win", "won",
     "ok", "score", "scores", "value", "result", "outcome", "percent", "percentage", "points", "bleu", "rouge", "is",
     "has")
)  # fmt: skip
"""Words for the outcome of a prompt or task, of which a heading that names no model consists."""
SUMMARY_WORDS = frozenset(
    ("average", "averages", "avg", "mean", "overall", "total", "median", "aggregate", "aggregated",
     "weighted", "ø", "μ", "gesamt", "durchschnitt", "moyenne", "promedio", "平均", "均分", "平均分", "总分", "综合")
)  # fmt: skip
SUMMARIZED_WORDS = frozenset(
    ("acc", "accuracy", "score", "scores", "performance", "progress", "result", "results", "points", "pass", "rate",
     "success", "wer", "cer", "f1", "em", "all", "of", "over", "the", "across", "tasks", "task", "datasets", "dataset",
     "benchmarks", "benchmark", "subsets", "categories", "macro", "micro", "global", "summary", "models", "model",
     "rank", "win")
)  # fmt: skip
"""Words beside which a word of ``SUMMARY_WORDS`` still summarizes all columns or rows."""
ROW_SUMMARY_START = (
    r"(?:max(?:imum)?|min(?:imum)?|sum|count|variance|std\.?|stdev|stddev|standard|(?:num(?:ber)?[ _]of|n|#)[ _]?"
    r"(?:questions?|samples?|prompts?|examples?|instances?|items?|tasks?|models?|shot(?:s)?|tests?)|weights?|shot(?:s)?)"
)
ROW_SUMMARY = re.compile(
    rf"^{ROW_SUMMARY_START}(?:[ _.]*(?:dev(?:iation)?\.?|err(?:or)?\.?|of|over|all|the|models?|scores?|tasks?))*$",
    re.I,
)
"""Names of rows that describe or summarize the rows of models or tasks."""
SMALLER_IS_BETTER = re.compile(
    r"(?:^|[\s_\-(/])(?:wer|cer|ter|ece|ppl|perplexity|mae|mse|rmse|nll|bpb|(?:error|hallucination)[\s_\-]rates?|"
    r"bits[\s_\-]per[\s_\-](?:byte|character)|brier(?:[\s_\-]score)?|(?:log|test|validation|val|eval)[\s_\-]loss)"
    r"(?=$|[\s_)(%/,])|[\s_\-]err(?:or)?(?:\s*\(%\))?$",
    re.I,
)
SPEECH_SIDES = re.compile(r"^(?:inverse )?(?:rtfx?|real[\s_\-]time[\s_\-]factor)\b", re.I)
"""Side columns of speech recognition, whose scores are word error rates."""
STDERR_WORDS = frozenset(("stderr", "se", "sem", "±", "+/-", "+-", "stderror"))
SIDE_WORDS = frozenset(
    ("params", "parameters", "param", "size", "sizes", "cost", "costs", "price", "prices", "pricing", "tokens", "token",
     "license", "licence", "licensing", "organization", "organisation", "org", "developer", "developers", "provider",
     "company", "creator", "author", "authors", "affiliation", "vendor", "maker", "architecture", "arch", "precision",
     "quantization", "quantisation", "dtype", "date", "released", "release", "created", "updated", "submitted", "year",
     "month", "link", "url", "homepage", "website", "paper", "github", "likes", "downloads", "votes", "battles", "rank",
     "ranking", "ranks", "rk", "place", "position", "pos", "standing", "medal", "medals", "#", "no", "nr", "n", "count",
     "counts", "n_total", "samples", "length", "len", "lengths", "chars", "characters", "words", "std", "stddev",
     "stdev", "sd", "ci", "co₂", "variance", "time", "latency", "runtime", "duration", "throughput", "speed", "co2",
     "emissions", "memory", "vram", "flops", "context", "ctx", "window", "cutoff", "revision", "sha", "commit", "notes",
     "note", "comment", "comments", "description", "weights", "access", "availability", "flagged", "moe", "merged",
     "temperature", "seed", "shots", "gpu", "gpus", "hardware", "layers", "batch", "q025", "q975", "confidence",
     "interval", "submission", "version", "revisions", "family", "hub", "energy", "footprint", "id", "index", "idx",
     "q2.5", "q97.5", "ttft", "dimension", "dimensions", "dims", "embedding", "vocab", "vocabulary", "epochs", "steps",
     "lr", "top_p", "top_k", "usd", "stderr", "se", "sem", "±", "+/-", "rtf", "rtfx", "δ", "delta", "change", "diff",
     "difference", "improvement", "timeouts", "errors", "failures",
     "crashes", "cases", "resolution", "width", "height", "dim", "macs", "macts", "crop", "h100", "a100",
     "排名", "名次", "順位", "순위", "机构", "参数", "参数量", "发布时间", "发布日期", "链接")
)  # fmt: skip
SIDE_MODIFIERS = frozenset(
    ("avg", "average", "mean", "median", "total", "num", "number", "of", "max", "min", "per", "task", "prompt",
     "question", "questions", "answer", "model", "output", "input", "response", "completion", "generated", "eur", "b",
     "m", "k", "bn", "billion", "billions", "million", "millions", "s", "sec", "secs", "seconds", "ms", "h", "hours",
     "kg", "gb", "gib", "mb", "1k", "1m", "mtok", "in", "on", "the", "for", "knowledge", "training", "last", "first",
     "published", "95", "hf", "hugging", "face", "is", "has", "active", "activated", "standard", "error", "deviation",
     "rating", "lower", "upper", "bound", "evaluated", "instances", "examples", "items", "open", "type", "data", "and",
     "chat", "template", "available", "run", "eval", "evaluation", "peak", "batch", "inference", "wall", "clock", "gpu",
     "api", "arena", "new", "old", "ub", "lb", "stylectrl", "style", "control", "score", "scores", "accuracy", "acc",
     "low", "high", "lo", "hi", "original", "public", "private", "commercial", "trainable", "non", "used", "first",
     "1", "2", "img", "image", "text", "train", "infer", "step", "pct", "embed")
)  # fmt: skip
SIDE_UNITS = re.compile(
    r"[\s_]\((?:secs?|seconds?|s|ms|min|mins|minutes|h|hrs?|hours|days|usd|eur|k?wh|gi?b|mi?b|mm|cm|words|chars|lines|tokens|"
    r"tok(?:ens?)?/s\w*|t/s)\)|[$€£]|\b(?:usd|eur)\b|(?:[a-z]|\))/(?:s|secs?|seconds?|min|minute|hour)\b|"
    r"^time[\s_](?:to|per|taken)\b|^(?:total|n|num|number of)[\s_](?!scores?$|points?$)[a-z]+s(?:es)?$",
    re.I,
)
"""Headings of durations, costs, sizes and counts by their unit, such as ``Latency 95th Percentile (s)``."""
MODEL_SIDES = frozenset(
    ("params", "parameters", "param", "license", "licence", "organization", "organisation", "org", "developer",
    "provider",
     "company", "creator", "vendor", "maker", "architecture", "arch", "precision", "quantization", "cutoff", "released",
     "likes", "downloads", "rank", "ranking", "price", "cost", "medal", "medals", "vram", "flops", "co2", "affiliation",
     "co₂", "latency", "throughput", "votes", "battles", "weights", "merged", "flagged", "moe", "ctx", "window", "q025",
     "q975")
)  # fmt: skip
"""Words that describe a model, never a task or a prompt: a column of them makes the rows models."""
