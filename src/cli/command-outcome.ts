import {
  FollowUpError,
  type FollowUpErrorCode,
  type FollowUpHandle,
  type FollowUpResult,
  InvalidRequestError,
  type Problem,
} from '../entries/client';
import { problemText } from '../contract/checks';
import { isTerminal, type TerminalStatus } from '../contract/job';
import { getAdviceAfterEnd } from '../contract/result';
import { FLAG_BY_FIELD, flagsFromFields } from './flags/request-flags';
import { jobRows, optionalRows, receiptRows } from './render/follow-up';
import { columns } from './render/text';
import type { Session } from './session';

/** The exit codes of the CLI. docs/configuration.md describes them. */
export const EXIT_CODE = {
  success: 0,
  jobArchived: 10,
  jobFailed: 11,
  rejected: 20,
  deliveryUnknown: 21,
  deadlineExceeded: 22,
  jobNotFound: 23,
  cancelled: 24,
  maxFailuresExceeded: 30,
  usage: 2,
  other: 1,
  // As with the program `timeout` of GNU coreutils.
  timedOut: 124,
  // As in a shell, the exit code after a signal is 128 plus the number of the signal (SIGINT, SIGTERM or SIGPIPE).
  receivedSigint: 130,
  receivedSigterm: 143,
  outputClosed: 141,
} as const;

const EXIT_CODE_TEXTS: Readonly<Record<keyof typeof EXIT_CODE, string>> = {
  success: 'success: the job is completed, all items of the batch ended, or the command did its work',
  jobArchived: 'the job is archived',
  jobFailed: 'the job failed',
  rejected: 'the follow-up was rejected',
  deliveryUnknown: 'the delivery is unknown',
  deadlineExceeded: 'the deadline has passed',
  jobNotFound: 'the job was not found',
  cancelled: 'the follow-up or the batch was cancelled',
  maxFailuresExceeded: 'more items of the batch failed than --max-failures allows',
  usage: 'the input or the configuration is invalid, or an ID was not found or is in conflict',
  other: 'any other error',
  timedOut: 'the time of --timeout has passed',
  receivedSigint: 'the command received Ctrl-C',
  receivedSigterm: 'the command received SIGTERM',
  outputClosed: 'the program that reads the output exited',
};

export const EXIT_CODES_HELP = Object.entries(EXIT_CODE_TEXTS)
  .map(([name, text]) => `  ${String(EXIT_CODE[name as keyof typeof EXIT_CODE]).padEnd(4)}${text}`)
  .join('\n');

const EXIT_CODE_BY_STATUS: Readonly<Record<TerminalStatus, number>> = {
  completed: EXIT_CODE.success,
  archived: EXIT_CODE.jobArchived,
  failed: EXIT_CODE.jobFailed,
};

/** The exit codes for follow-ups that ended without a final job. */
const EXIT_CODE_BY_ERROR: Partial<Record<FollowUpErrorCode, number>> = {
  INVALID_REQUEST: EXIT_CODE.usage,
  REJECTED: EXIT_CODE.rejected,
  DELIVERY_UNKNOWN: EXIT_CODE.deliveryUnknown,
  DEADLINE_EXCEEDED: EXIT_CODE.deadlineExceeded,
  JOB_NOT_FOUND: EXIT_CODE.jobNotFound,
  CANCELLED: EXIT_CODE.cancelled,
  TERMINATED: EXIT_CODE.other,
  WORKFLOW_TIMED_OUT: EXIT_CODE.other,
  UNEXPECTED_FAILURE: EXIT_CODE.other,
};

const USAGE_ERRORS: readonly FollowUpErrorCode[] = ['CONFLICT', 'NOT_FOUND', 'INVALID_CONFIGURATION'];

const LABEL_BY_FIELD: Readonly<Record<string, string>> = {
  ...FLAG_BY_FIELD,
  ...flagsFromFields('concurrency', 'maxFailures'),
  // The flag has the name --batch-id or --batch.
  batchId: 'batch ID',
  scheduleId: 'ID',
  items: 'FILE',
  spec: 'timing',
  outcome: '--outcome',
  runId: '--run-id',
};

export interface CommandOutcome {
  readonly exitCode: number;
  /** The JSON document that `--json` prints. */
  readonly document: unknown;
  readonly text: string;
  /** Whether the text goes to stdout. The text of an error goes to stderr. */
  readonly isResult: boolean;
}

export function printOutcome(session: Session, outcome: CommandOutcome): void {
  session.exitCode = outcome.exitCode;
  session.print(outcome.document, outcome.isResult ? outcome.text : '');
  if (!outcome.isResult) session.printStatus(outcome.text);
}

/** Waits for the outcome of a follow-up. @throws every error that is not an outcome, such as a lost connection */
export async function awaitOutcome(followUp: FollowUpHandle, signal?: AbortSignal): Promise<CommandOutcome> {
  try {
    return commandOutcomeFromResult(followUp.workflowId, await followUp.result({ signal }));
  } catch (error) {
    if (error instanceof FollowUpError && error.code in EXIT_CODE_BY_ERROR)
      return commandOutcomeFromError(error);
    throw error;
  }
}

export function commandOutcomeFromResult(workflowId: string, result: FollowUpResult): CommandOutcome {
  const { id, status, prLink, model, archivedAt } = result;
  const { repository, ref } = result.source;
  const source = [repository, ref].filter((part) => part !== null).join(' @ ');
  const text = columns([
    ['status', status],
    ['prLink', prLink ?? 'null'],
    ['job', id],
    ...optionalRows('source', source || null),
    ...optionalRows('model', model),
    ...optionalRows('archivedAt', archivedAt),
    ...receiptRows(result.receipt),
    ['workflow', workflowId],
  ]);
  const exitCode = isTerminal(status) ? EXIT_CODE_BY_STATUS[status] : EXIT_CODE.other;
  return { exitCode, document: result, text, isResult: true };
}

/** The maximum number of printed problems, because every line of a file may have problems. */
const MAX_PROBLEMS = 100;

export function commandOutcomeFromError(error: unknown): CommandOutcome {
  if (error instanceof InvalidRequestError) {
    const printedProblems = error.problems.slice(0, MAX_PROBLEMS).map(toFlagProblemText);
    const more = error.problems.length - printedProblems.length;
    const problems = more > 0 ? [...printedProblems, `… and ${more} more`] : printedProblems;
    const message = problems.length === 1 ? problems.join() : ['', ...problems].join('\n  ');
    return createErrorOutcome(EXIT_CODE.usage, 'InvalidRequest', message, { problems });
  }
  if (!(error instanceof FollowUpError)) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    return createErrorOutcome(EXIT_CODE.other, name.replace(/(?!^)Error$/, ''), message, null);
  }
  const { code, workflowId, message, receipt, job } = error;
  // The types of `--json` are in Pascal case: the code `BATCH_ITEMS_UNAVAILABLE` becomes `BatchItemsUnavailable`.
  const typeName = code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
  const type = code === 'REJECTED' ? 'FollowUpRejected' : typeName;
  const exitCode = EXIT_CODE_BY_ERROR[code];
  if (exitCode === undefined)
    return createErrorOutcome(
      USAGE_ERRORS.includes(code) ? EXIT_CODE.usage : EXIT_CODE.other,
      type,
      message,
      null,
    );
  const details = error.details ?? (code === 'CANCELLED' ? { job, receipt } : null);
  const rows = [
    ...optionalRows('HTTP status', error.details?.httpStatus),
    ...optionalRows('agent service', error.details?.serviceMessage),
    ...(job === null ? [] : jobRows(job)),
    ...(receipt === null ? [] : receiptRows(receipt)),
    ...optionalRows(
      'what to do',
      code === 'INVALID_REQUEST'
        ? INVALID_REQUEST_ADVICE
        : receipt && getAdviceAfterEnd(receipt.delivery, code === 'CANCELLED'),
    ),
    ...optionalRows('workflow', workflowId),
  ];
  const text = `${type}: ${message}\n${columns(rows, '  ')}`;
  return { exitCode, document: { type, message, details, workflowId }, text, isResult: false };
}

const INVALID_REQUEST_ADVICE = 'send a corrected request with a new request ID';

function createErrorOutcome(
  exitCode: number,
  type: string,
  message: string,
  details: unknown,
): CommandOutcome {
  return { exitCode, document: { type, message, details }, text: `error: ${message}`, isResult: false };
}

function toFlagProblemText(problem: Problem): string {
  return problemText(problem, LABEL_BY_FIELD).replace(': is missing', ' is missing');
}
