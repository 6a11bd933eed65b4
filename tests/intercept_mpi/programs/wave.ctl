; A field in two dimensions, whose output MEEP writes as HDF5 by MPI-IO.
(set! geometry-lattice (make lattice (size 8 8 no-size)))
(set! sources (list (make source (src (make continuous-src (frequency 0.15))) (component Ez) (center 0 0))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 8)
(run-until 10 (at-beginning output-epsilon) (at-end output-efield-z))
