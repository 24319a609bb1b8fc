"""What is run by hand to make what the package ships."""
