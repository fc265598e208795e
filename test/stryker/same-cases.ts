/**
 * Property tests draw the same cases in every run, so that a mutant is found either always or never. A failed case is not
 * shrunk: nobody reads it.
 */
import fc from "fast-check";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 20_261_119, endOnFailure: true });
