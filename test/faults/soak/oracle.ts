import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/contract/result';
import type { JobReport, JournalEntry } from '../../../src/sandbox';
import { type Following, failureOf } from '../../harness/following';
import type { Part } from './cast';

/** How a follow-up ended. */
export type End =
  | { readonly kind: 'result'; readonly result: FollowUpResult }
  | { readonly kind: 'failure'; readonly type: string; readonly details: FailureDetails };

export async function endOf(following: Following): Promise<End> {
  try {
    return { kind: 'result', result: await following.result() };
  } catch {
    const { type, details } = await failureOf(following.handle);
    return { kind: 'failure', type, details };
  }
}

export function receiptOf(end: End): Receipt {
  return end.kind === 'result' ? end.result.followUp : end.details.followUp;
}

/** What is wrong with an end, by the journal of the service and by what has become of the job; empty when all is true. */
export function lies({ asked }: Part, end: End, posts: readonly JournalEntry[], report: JobReport): string[] {
  const { delivery, settledAt } = receiptOf(end);
  const { verdict, confirmedBy, sends } = delivery;
  const processed = posts.filter((post) => post.processed).length;
  const found: string[] = [];
  const must = (truth: boolean, lie: string) => {
    if (!truth) found.push(lie);
  };

  const allowed = asked.onUnknownDelivery === 'resend' ? 2 : 1;
  must(processed <= allowed, `the message was processed ${processed} times`);
  must(posts.length <= sends, `the receipt counts ${sends} sends, the service ${posts.length} POSTs`);
  if (confirmedBy === 'response' || confirmedBy === 'read') {
    must(processed >= 1, `accepted by ${confirmedBy}, and never processed`);
  }
  if (verdict === 'not-sent' || verdict === 'rejected') must(processed === 0, `${verdict}, and processed`);
  must((verdict === 'accepted') === (confirmedBy !== null), `${verdict} by ${String(confirmedBy)}`);

  if (end.kind === 'failure') {
    const verdicts: Readonly<Record<string, readonly string[]>> = {
      FollowUpRejected: ['not-sent', 'rejected'],
      DeliveryUnknown: ['unknown'],
      JobNotFound: ['not-sent', 'accepted', 'unknown'],
      DeadlineExceeded: ['not-sent', 'accepted', 'unknown'],
    };
    must(verdicts[end.type]?.includes(verdict) === true, `${end.type} with ${verdict}`);
    return found;
  }
  must(verdict === 'accepted', `a result with ${verdict}`);
  const { status, prLink, followUp } = end.result;
  // An assumed message may be processed later than anybody looked.
  if (confirmedBy === 'assumed' || confirmedBy === 'operator') return found;
  must(status === report.job.status, `the result is ${status}, the job ${report.job.status}`);
  must(
    prLink === report.job.prLink,
    `the result links ${String(prLink)}, the job ${String(report.job.prLink)}`,
  );
  must(followUp.evidence !== null, 'no evidence');
  const ended = report.turns
    .filter(({ prompt }) => prompt !== null)
    .map(({ endedAt }) => endedAt ?? Infinity);
  must(Math.max(...ended) <= Date.parse(settledAt ?? ''), 'the turn ended after the follow-up');
  return found;
}
