"""Problems: what methods run on, held in memory; they measure, methods do not."""
