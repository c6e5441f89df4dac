"""What solvers of pipelines share: contracted graphs, sets of last stages, assessment and enumeration of placements."""
