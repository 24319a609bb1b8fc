"""From scores to answers: calibration, probabilities, prediction sets and the unknown score."""
