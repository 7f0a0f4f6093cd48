"""The bytes of characters that have a meaning in N-Triples, as constants of compiled code."""

from __future__ import annotations

BACKSPACE, TAB, LINE_FEED, VERTICAL_TAB, FORM_FEED, CARRIAGE_RETURN = b"\b\t\n\v\f\r"
SPACE, QUOTE, NUMBER_SIGN, PERCENT, APOSTROPHE, PLUS, MINUS, DOT, SLASH = b" \"#%'+-./"
COLON, LESS_THAN, GREATER_THAN, QUESTION_MARK, AT_SIGN, BACKSLASH, CARET, UNDERSCORE = b":<>?@\\^_"
DIGIT_0, DIGIT_1, DIGIT_9 = b"019"
CAPITAL_A, CAPITAL_E, CAPITAL_F, CAPITAL_T, CAPITAL_U, CAPITAL_Z = b"AEFTUZ"
SMALL_A, SMALL_B, SMALL_F, SMALL_N, SMALL_R, SMALL_T, SMALL_U, SMALL_Z = b"abfnrtuz"
DELETE = 0x7F
BEYOND_ASCII = 0x80
"""From here on bytes belong to characters of several bytes."""
