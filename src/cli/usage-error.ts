/** Thrown when a command can't be carried out as it was given; the message names the flag or argument. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  /** @param problems each names its flag, what is wrong, and what is right */
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}
