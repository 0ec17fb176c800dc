/** Thrown when the worker can't start because of how it is configured; the message names every problem and holds no secret. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';

  /** @param problems each begins with the name of its variable, says what is wrong, and what is right */
  constructor(readonly problems: readonly string[]) {
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
    super(
      `The worker cannot start: its configuration has ${count}.\n` +
        problems.map((problem) => `  ${problem}\n`).join('') +
        'Every variable is described in README.md, "Run the worker".',
    );
  }
}

/**
 * Waits for both, so that one message tells what is wrong with each.
 *
 * @throws ConfigurationError with the problems of both
 */
export async function bothConfigured<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  const ends = await Promise.allSettled([a, b]);
  const problems = ends.flatMap((end) => {
    return end.status === 'rejected' && end.reason instanceof ConfigurationError ? end.reason.problems : [];
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return Promise.all([a, b]);
}
