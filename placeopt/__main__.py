"""python -m placeopt"""

from placeopt.cli import main

main()
