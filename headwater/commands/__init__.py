"""The commands of `headwater`, one module each, and what they share.

`ending` says how a command ends, `queries` and `inputs` read what was typed, `tables`, `progress` and `board` paint the
terminal. Nothing here imports Spark before a command needs it, so that `check` and `explain` answer at once.
"""
