import {
  FollowUpCancelledError,
  type FollowUpEndError,
  FollowUpFailedError,
  type FollowUpResult,
  FollowUpTerminatedError,
} from '../../client';
import { EXIT, exitCodeOfFailure, exitCodeOfResult } from '../exit-codes';
import type { Output } from './output';
import { receiptRows } from './progress';
import { columns } from './text';

/** How a follow-up ended: as exit code, as JSON document and as text. */
export interface Outcome {
  readonly exitCode: number;
  /** The JSON document of `--json`. */
  readonly document: unknown;
  readonly text: string;
  /** Whether there is a job: it goes to stdout. An end without a job goes to stderr. */
  readonly isResult: boolean;
}

export function outcomeOfResult(workflowId: string, result: FollowUpResult): Outcome {
  return {
    exitCode: exitCodeOfResult(result),
    document: result,
    text: resultText(workflowId, result),
    isResult: true,
  };
}

export function outcomeOfEnd(end: FollowUpEndError): Outcome {
  const { workflowId, message } = end;
  const told = { workflowId, isResult: false };
  if (end instanceof FollowUpFailedError) {
    const { type, details } = end;
    const { followUp, job, serviceMessage, httpStatus } = details;
    const rows: [string, string][] = [
      ...(httpStatus === undefined ? [] : [['http status', String(httpStatus)] as [string, string]]),
      ...(serviceMessage === undefined ? [] : [['service', serviceMessage] as [string, string]]),
      ...(job === null
        ? []
        : ([
            ['last status', job.status],
            ['prLink', job.prLink ?? 'null'],
          ] as [string, string][])),
      ...receiptRows(followUp),
      ['workflow', workflowId],
    ];
    const document = { type, message, details, workflowId };
    return {
      ...told,
      exitCode: exitCodeOfFailure(type),
      document,
      text: `${type}: ${message}\n${columns(rows, '  ')}`,
    };
  }
  if (end instanceof FollowUpCancelledError) {
    const { receipt } = end;
    const rows: [string, string][] = [
      ...(receipt === null ? [] : receiptRows(receipt)),
      ['workflow', workflowId],
    ];
    const document = { type: 'Cancelled', message, details: { job: null, followUp: receipt }, workflowId };
    return {
      ...told,
      exitCode: EXIT.cancelled,
      document,
      text: `Cancelled: ${message}\n${columns(rows, '  ')}`,
    };
  }
  const type = otherEnd(end);
  const document = { type, message, details: null, workflowId };
  return { ...told, exitCode: EXIT.other, document, text: `${type}: ${message}\n  workflow  ${workflowId}` };
}

export function printOutcome(output: Output, outcome: Outcome, json: boolean): void {
  if (json) output.json(outcome.document);
  else if (outcome.isResult) output.result(outcome.text);
  if (!outcome.isResult) output.note(outcome.text);
}

function otherEnd(end: FollowUpEndError): string {
  if (end instanceof FollowUpTerminatedError) return 'Terminated';
  return end.code === 'TIMED_OUT' ? 'TimedOut' : 'UnexpectedFailure';
}

function resultText(workflowId: string, result: FollowUpResult): string {
  const { repository, ref } = result.source;
  const source = [repository, ref].filter((part) => part !== null).join(' @ ');
  return columns([
    ['status', result.status],
    ['prLink', result.prLink ?? 'null (no file was changed, or no pull request was opened)'],
    ['job', result.id],
    ...(source === '' ? [] : [['source', source] as [string, string]]),
    ...(result.model === null ? [] : [['model', result.model] as [string, string]]),
    ...(result.archivedAt === null ? [] : [['archivedAt', result.archivedAt] as [string, string]]),
    ...receiptRows(result.followUp),
    ['workflow', workflowId],
  ]);
}
