import { NamespaceNotFoundError } from '@temporalio/common';
import {
  FollowUpNotFoundError,
  InvalidBatchError,
  InvalidRequestError,
  RequestConflictError,
  TemporalConfigError,
  TemporalUnreachableError,
} from '../client';
import { EXIT } from './exit-codes';
import type { Output } from './output';
import { problemOfFlag } from './request-flags';
import { UsageError } from './usage-error';

/** What a command could not do: one message for people, one document for `--json`, and the exit code. */
export interface Trouble {
  readonly exitCode: number;
  readonly type: string;
  readonly message: string;
  readonly problems?: readonly string[];
}

export function troubleOf(error: unknown): Trouble {
  if (error instanceof InvalidRequestError) return usage('InvalidRequest', error.problems.map(problemOfFlag));
  if (error instanceof InvalidBatchError) return usage('InvalidBatch', error.problems);
  if (error instanceof UsageError) return usage('Usage', error.problems);
  if (error instanceof TemporalConfigError) return usage('Configuration', [error.message]);
  if (error instanceof RequestConflictError) {
    const message = error.message.replaceAll('requestId', '--request-id');
    return { exitCode: EXIT.usage, type: 'RequestConflict', message };
  }
  if (error instanceof FollowUpNotFoundError) {
    return { exitCode: EXIT.usage, type: 'NotFound', message: error.message };
  }
  if (error instanceof TemporalUnreachableError) {
    const message = `${error.message}.\nStart one with \`npm run demo\`, or set TEMPORAL_ADDRESS (host:port) to yours.`;
    return { exitCode: EXIT.other, type: 'Unreachable', message };
  }
  if (error instanceof NamespaceNotFoundError) {
    const message = `There is no namespace ${JSON.stringify(error.namespace)} on this Temporal server (TEMPORAL_NAMESPACE).`;
    return { exitCode: EXIT.other, type: 'NamespaceNotFound', message };
  }
  const type = error instanceof Error ? error.name.replace(/Error$/, '') || 'Error' : 'Error';
  return { exitCode: EXIT.other, type, message: wordsOf(error) };
}

/**
 * One message, without a stack: that is for who develops the starter, with DEBUG set.
 *
 * @param json whether stdout is to get a document too
 */
export function tellTrouble(output: Output, error: unknown, json: boolean, debug: boolean): number {
  const { exitCode, type, message, problems } = troubleOf(error);
  if (json) output.json({ type, message, details: problems === undefined ? null : { problems } });
  output.note(`error: ${message}`);
  if (debug && error instanceof Error) output.note(error.stack ?? '');
  return exitCode;
}

function usage(type: string, problems: readonly string[]): Trouble {
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
