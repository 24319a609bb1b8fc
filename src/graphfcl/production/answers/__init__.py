"""Turn scores into answers: calibration, probabilities, prediction sets and the unknown score."""
