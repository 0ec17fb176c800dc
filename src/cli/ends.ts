import {
  FollowUpError,
  type FollowUpErrorCode,
  type FollowUpHandle,
  type FollowUpResult,
  InvalidRequestError,
  type Problem,
} from '../entries/client';
import { problemText } from '../contract/checks';
import { isTerminal } from '../contract/job';
import { adviceAfter } from '../contract/result';
import { FLAG_OF_FIELD, flagsOf, wordsOf } from './flags/request-flags';
import { jobRows, rowIf, receiptRows } from './render/follow-up';
import { columns } from './render/text';
import type { Session } from './session';

/** docs/configuration.md says more of them. */
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
  usage: 2,
  other: 1,
  // 128 and the number of SIGINT, SIGTERM and SIGPIPE, as in shells.
  interrupted: 130,
  terminated: 143,
  readerGone: 141,
} as const;

export const EXIT_CODES_HELP = Object.entries(EXIT)
  .map(([name, code]) => `  ${String(code).padEnd(4)}${wordsOf(name).join(' ')}`)
  .join('\n');

/** The ends of a follow-up without a job. */
const EXIT_OF_END: Partial<Record<FollowUpErrorCode, number>> = {
  INVALID_REQUEST: EXIT.usage,
  REJECTED: EXIT.rejected,
  DELIVERY_UNKNOWN: EXIT.deliveryUnknown,
  DEADLINE_EXCEEDED: EXIT.deadline,
  JOB_NOT_FOUND: EXIT.jobNotFound,
  CANCELLED: EXIT.cancelled,
  TERMINATED: EXIT.other,
  WORKFLOW_TIMED_OUT: EXIT.other,
  UNEXPECTED_FAILURE: EXIT.other,
};

const USAGE_ERRORS: readonly FollowUpErrorCode[] = ['CONFLICT', 'NOT_FOUND', 'INVALID_CONFIGURATION'];

const NAME_OF_FIELD: Readonly<Record<string, string>> = {
  ...FLAG_OF_FIELD,
  ...flagsOf('batchId', 'concurrency', 'maxFailures'),
  scheduleId: 'ID',
  items: 'FILE',
  spec: 'timing',
};

export interface End {
  readonly exitCode: number;
  /** Of `--json`. */
  readonly document: unknown;
  readonly text: string;
  /** A result goes to stdout, any other end to stderr. */
  readonly isResult: boolean;
}

export function printEnd(session: Session, end: End): void {
  session.exitCode = end.exitCode;
  session.print(end.document, end.isResult ? end.text : '');
  if (!end.isResult) session.note(end.text);
}

/** Waits for the end of a follow-up. @throws any error that is not its end */
export async function endOf(followUp: FollowUpHandle, signal?: AbortSignal): Promise<End> {
  try {
    return endOfResult(followUp.workflowId, await followUp.result({ signal }));
  } catch (error) {
    if (error instanceof FollowUpError && error.code in EXIT_OF_END) return endOfError(error);
    throw error;
  }
}

export function endOfResult(workflowId: string, result: FollowUpResult): End {
  const { id, status, prLink, model, archivedAt } = result;
  const { repository, ref } = result.source;
  const source = [repository, ref].filter((part) => part !== null).join(' @ ');
  const text = columns([
    ['status', status],
    ['prLink', prLink ?? 'null (no file was changed, or no pull request was opened)'],
    ['job', id],
    ...rowIf('source', source || null),
    ...rowIf('model', model),
    ...rowIf('archivedAt', archivedAt),
    ...receiptRows(result.receipt),
    ['workflow', workflowId],
  ]);
  const exitCode = isTerminal(status) ? EXIT[status] : EXIT.other;
  return { exitCode, document: result, text, isResult: true };
}

/** A file may have some for each of its lines. */
const MAX_PROBLEMS = 100;

export function endOfError(error: unknown): End {
  if (error instanceof InvalidRequestError) {
    const told = error.problems.slice(0, MAX_PROBLEMS).map(inFlags);
    const more = error.problems.length - told.length;
    const problems = more > 0 ? [...told, `… and ${more} more`] : told;
    const message = problems.length === 1 ? problems.join() : ['', ...problems].join('\n  ');
    return failed(EXIT.usage, 'InvalidRequest', message, { problems });
  }
  if (!(error instanceof FollowUpError)) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    return failed(EXIT.other, name.replace(/(?!^)Error$/, ''), message, null);
  }
  const { code, workflowId, message, receipt, job } = error;
  // `BATCH_ITEMS_UNAVAILABLE` is `BatchForgotten`, as all types of `--json` are written.
  const words = code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
  const type = code === 'REJECTED' ? 'FollowUpRejected' : words;
  const exitCode = EXIT_OF_END[code];
  if (exitCode === undefined)
    return failed(USAGE_ERRORS.includes(code) ? EXIT.usage : EXIT.other, type, message, null);
  const details = error.details ?? (code === 'CANCELLED' ? { job, receipt } : null);
  const rows = [
    ...rowIf('http status', error.details?.httpStatus),
    ...rowIf('service', error.details?.serviceMessage),
    ...(job === null ? [] : jobRows(job)),
    ...(receipt === null ? [] : receiptRows(receipt)),
    ...rowIf(
      'what to do',
      code === 'INVALID_REQUEST' ? CORRECT_IT : receipt && adviceAfter(receipt.delivery),
    ),
    ...rowIf('workflow', workflowId),
  ];
  const text = `${type}: ${message}\n${columns(rows, '  ')}`;
  return { exitCode, document: { type, message, details, workflowId }, text, isResult: false };
}

const CORRECT_IT = 'send a corrected request under a new request id';

function failed(exitCode: number, type: string, message: string, details: unknown): End {
  return { exitCode, document: { type, message, details }, text: `error: ${message}`, isResult: false };
}

function inFlags(problem: Problem): string {
  return problemText(problem, NAME_OF_FIELD).replace(': is missing', ' is missing');
}
