"""Time: windows, ticks, watermarks, report policies and streaming operators, as pure functions of time."""
