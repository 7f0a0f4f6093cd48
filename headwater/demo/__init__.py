"""The demonstration: the tollgate city of the C-SPARQL paper (section 2), alive for a minute.

`city.ttl` is the static city, `traffic` invents a morning of cars for it, `feed` writes that morning down as stream
files while time passes, `queries/` holds three queries, one per dialect. `headwater.commands.demo_command` runs them.
"""
