"""Where gradus differs from scikit-learn on purpose: a pattern of test names, and the reason."""

DIFFERENT: dict[str, str] = {}
