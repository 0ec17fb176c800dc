import { NamespaceNotFoundError } from '@temporalio/common';
import type { Problem as InputProblem } from '../core/problem';
import { EXIT, UsageError } from './exit-codes';
import type { Output } from './render/output';
import { FLAG_OF_FIELD } from './flags/request-flags';
import {
  ConflictError,
  FollowUpError,
  hasCode,
  InvalidRequestError,
  NotFoundError,
  TemporalUnreachableError,
} from '../client';

/** The words of the command line for the fields of every input. */
const NAME_OF_FIELD: Readonly<Record<string, string>> = {
  ...FLAG_OF_FIELD,
  batchId: '--batch-id',
  concurrency: '--concurrency',
  tolerate: '--tolerate',
  scheduleId: 'ID',
  items: 'FILE',
  spec: 'timing',
  sendsPerProject: '--sends-per-project',
  readsPerProject: '--reads-per-project',
  sendsTotal: '--sends-total',
  readsTotal: '--reads-total',
  reason: '--reason',
};

function inFlags({ field, text }: InputProblem): string {
  return `${NAME_OF_FIELD[field] ?? field.replace(/^projectWeights\./, '--project-weight ')}: ${text}`;
}

/** Why a command failed: one message for people, one document for `--json`, and the exit code. */
interface Problem {
  readonly exitCode: number;
  readonly type: string;
  readonly message: string;
  readonly problems?: readonly string[];
}

export function problemOf(error: unknown): Problem {
  if (error instanceof InvalidRequestError) return usage('InvalidRequest', error.problems.map(inFlags));
  if (error instanceof UsageError) return usage('Usage', error.problems);
  if (hasCode(error, 'MISCONFIGURED')) return usage('Configuration', [error.message]);
  if (error instanceof ConflictError) {
    const message = error.message
      .replaceAll('requestId', '--request-id')
      .replace('another batch id for', 'another --batch-id for');
    return { exitCode: EXIT.usage, type: 'Conflict', message };
  }
  if (error instanceof NotFoundError)
    return { exitCode: EXIT.usage, type: 'NotFound', message: error.message };
  if (error instanceof TemporalUnreachableError) {
    const message = `${error.message}\nTEMPORAL_ADDRESS (host:port), or a profile in temporal.toml, names the server.`;
    return { exitCode: EXIT.other, type: 'Unreachable', message };
  }
  if (error instanceof NamespaceNotFoundError) {
    const message = `There is no namespace ${JSON.stringify(error.namespace)} on this Temporal server (TEMPORAL_NAMESPACE).`;
    return { exitCode: EXIT.other, type: 'NamespaceNotFound', message };
  }
  const type = typeOf(error);
  return { exitCode: EXIT.other, type, message: wordsOf(error) };
}

/**
 * Prints one message. The stack is printed only if DEBUG is set, for developers of the starter.
 *
 * @param json whether to print a document on stdout too
 */
export function printError(output: Output, error: unknown, json: boolean, debug: boolean): number {
  const { exitCode, type, message, problems } = problemOf(error);
  if (json) output.json({ type, message, details: problems === undefined ? null : { problems } });
  output.note(`error: ${message}`);
  if (debug && error instanceof Error) output.note(error.stack ?? '');
  return exitCode;
}

function usage(type: string, problems: readonly string[]): Problem {
  const [first = ''] = problems;
  const message = problems.length === 1 ? first : ['', ...problems].join('\n  ');
  return { exitCode: EXIT.usage, type, message, problems };
}

/** The SDK says "Failed to …" and keeps the reason in the cause of its `ServiceError`. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { name, message, cause } = error;
  return name === 'ServiceError' && cause instanceof Error ? `${message}: ${cause.message}` : message;
}

/** `BATCH_FORGOTTEN` is `BatchForgotten`, as all types of `--json` are written. */
function typeOf(error: unknown): string {
  if (error instanceof FollowUpError)
    return error.code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
  return error instanceof Error ? error.name.replace(/Error$/, '') || 'Error' : 'Error';
}
