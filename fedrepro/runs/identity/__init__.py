"""What a run is: its identity, the code that computes it, and the plan of a figure's runs."""
