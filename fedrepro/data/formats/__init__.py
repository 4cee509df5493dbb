"""How files are read: archives, images, MATLAB files, pickles, rating tables."""
