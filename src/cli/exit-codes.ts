import type { FailureType, FollowUpResult } from '../client';

/** The exit codes of the starter; docs/configuration.md and `--help` list them for scripts. */
export const EXIT = {
  completed: 0,
  archived: 10,
  failed: 11,
  rejected: 20,
  deliveryUnknown: 21,
  deadline: 22,
  jobNotFound: 23,
  cancelled: 24,
  beyondTolerance: 30,
  /** Bad flags, an invalid request, an unknown workflow id, a request id with another prompt. */
  usage: 2,
  /** Anything else, above all an unreachable Temporal. */
  other: 1,
  /** 128 + the signal's number, as in shells: the follow-up continues. */
  interrupted: 130,
  terminated: 143,
  /** Whoever read the results has gone: 128 and the number of SIGPIPE. */
  readerGone: 141,
} as const;

const OF_FAILURE: Readonly<Record<FailureType, number>> = {
  InvalidRequest: EXIT.usage,
  FollowUpRejected: EXIT.rejected,
  DeliveryUnknown: EXIT.deliveryUnknown,
  DeadlineExceeded: EXIT.deadline,
  JobNotFound: EXIT.jobNotFound,
};

export function exitCodeOfFailure(type: FailureType): number {
  return OF_FAILURE[type];
}

export function exitCodeOfResult({ status }: Pick<FollowUpResult, 'status'>): number {
  if (status === 'archived') return EXIT.archived;
  if (status === 'failed') return EXIT.failed;
  return status === 'completed' ? EXIT.completed : EXIT.other;
}

export const EXIT_CODES_HELP = `Exit codes:
  0   completed; a batch: done       20  rejected            30   batch beyond its tolerance
  10  archived                       21  delivery unknown    2    usage or invalid input
  11  failed (the job, not the       22  deadline            1    anything else
      follow-up)                     23  job not found       130  Ctrl-C (the work goes on)
                                     24  cancelled           143  SIGTERM (likewise)`;

/** Thrown when a command can't be carried out as it was given; the message names the flag or argument. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  /** @param problems each names its flag, what is wrong, and what is right */
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}
