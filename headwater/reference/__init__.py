"""The definition, executable: at each tick the graphs of the windows are built and pyoxigraph is asked."""
