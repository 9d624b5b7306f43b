/** The command line is wrong: the sentence says how, the exit code is 2. */
export class UsageError extends Error {}
