/**
 * Folders whose test files each have a process of their own, because they replace modules, or variables of the process. All
 * the others share processes, and so the work of loading what they test; there an architecture test refuses replacements.
 */
export const ALONE = ["test/main"] as const;
