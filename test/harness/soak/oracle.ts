import { CancelledFailure, type Client, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { MEMO_RECEIPT } from '../../../src/core/names';
import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/core/result';
import type { JournalEntry, Sandbox } from '../../../sandbox';
import { throughRestarts } from '../restartable-server';
import type { Part } from './follow-ups';
import { CONFIRM_MS, LAG_MS } from './service';

/** How the latest run of a follow-up ended. */
export type End =
  | { readonly kind: 'result'; readonly result: FollowUpResult; readonly receipt: Receipt }
  | { readonly kind: string; readonly receipt: Receipt }
  | { readonly kind: 'other'; readonly problem: string };

/** Waits until the latest run of a follow-up has ended, in whatever way. */
export async function endOf(client: Client, workflowId: string): Promise<End> {
  const handle = client.workflow.getHandle(workflowId);
  try {
    const result = (await throughRestarts(() => handle.result())) as FollowUpResult;
    return { kind: 'result', result, receipt: result.followUp };
  } catch (error) {
    const cause = error instanceof WorkflowFailedError ? error.cause : undefined;
    if (cause instanceof ApplicationFailure && cause.details?.[0] !== undefined)
      return { kind: cause.type ?? '', receipt: (cause.details[0] as FailureDetails).followUp };
    const { memo } = await throughRestarts(() => handle.describe());
    const receipt = memo?.[MEMO_RECEIPT] as Receipt | undefined;
    if (cause instanceof CancelledFailure && receipt) return { kind: 'cancelled', receipt };
    return { kind: 'other', problem: String(cause ?? error) };
  }
}

/** How late the sandbox may notice that an exchange has ended: it shares its process with the soak. */
const NOTICE_MS = 1_000;

/** What is wrong with the end of a follow-up, by the service's journal. The simulation has the finer rules. */
export function lies({ key, status, asked, end, notDelivered, resets, unanswered }: Part, sandbox: Sandbox) {
  const found = unanswered.map((update) => `nobody has answered ${update}`);
  const must = (truth: boolean, lie: string) => {
    if (!truth) found.push(`${key.jobId}: ${lie}`);
  };
  const posts = sandbox.journal.entries({ ...key, operation: 'message' });
  const gets = sandbox.journal.entries({ ...key, operation: 'get' });
  const allowed = 1 + (asked.onUnknownDelivery === 'resend' ? 1 : 0) + notDelivered;
  const sent = posts.filter(mayBeProcessed);
  must(sent.length <= allowed, `${sent.length} POSTs may have been processed, and ${allowed} were allowed`);
  if (!('receipt' in end)) return [...found, `${key.jobId}: it ended by ${end.problem}`];

  const { delivery, evidence, sentAt } = end.receipt;
  const { verdict, confirmedBy, sends } = delivery;
  const isProcessed = posts.some((post) => post.processed);
  must(!isProcessed || !['not-sent', 'rejected'].includes(verdict), `${verdict}, and processed`);
  must(isProcessed || confirmedBy !== 'response', 'accepted by response, and never processed');
  must(
    isProcessed || confirmedBy !== 'read' || status === 'active',
    'proved by reading, and never processed',
  );
  const isCounted = posts.length <= sends || resets > 0 || end.kind === 'cancelled';
  must(isCounted, `${sends} sends, ${posts.length} POSTs`);
  if (!('result' in end)) return found;

  const { result } = end;
  const endedAt = sent.map(({ time, endedAt: at }) => Date.parse(at ?? time));
  const freshAt = Math.max(Date.parse(sentAt ?? '') || 0, ...endedAt) + CONFIRM_MS - NOTICE_MS;
  const settledAt = Date.parse(result.followUp.settledAt ?? '');
  must(verdict === 'accepted' && evidence !== null, `a result with ${verdict}, and no evidence`);
  must(settledAt >= freshAt, `told ${freshAt - settledAt} ms before an answer could be fresh`);
  const isFresh = gets.some((get) => get.status === 200 && Date.parse(get.time) >= freshAt);
  must(isFresh, 'a result, and no fresh answer');
  const { turns, changes } = sandbox.job(key);
  const ours = turns.flatMap(({ prompt, endedAt: at }) => (prompt === null ? [] : [at ?? Infinity]));
  const turnsEndedAt = Math.max(0, ...ours);
  must(turnsEndedAt <= settledAt, 'the turn ended after the follow-up');
  const from = Math.max(freshAt - LAG_MS, turnsEndedAt);
  // As it was then, and whatever it became since.
  const first = changes.findLastIndex(({ at }) => at <= from);
  const isShown = changes.some(
    ({ at, job }, index) =>
      index >= first && at <= settledAt && job.status === result.status && job.prLink === result.prLink,
  );
  must(isShown, `the job was never ${result.status} with ${String(result.prLink)} after the turn`);
  return found;
}

/** Only an answered 429 says for certain that the message was not processed, and that it may come again. */
function mayBeProcessed({ status, ending }: JournalEntry): boolean {
  return !(status === 429 && ending === 'answered');
}
