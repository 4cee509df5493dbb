"""How one run is computed: the loop that measures, and the process that it runs in."""
