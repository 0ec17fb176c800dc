import type { NativeConnection } from '@temporalio/worker';
import { explainTrouble } from './connection-trouble';
import { describeNamespace } from './namespace';
import type { Redactor } from './redaction';
import type { TemporalConfig } from '../client/temporal-config';

/** A server that needs longer to say who it is can't be worked with. */
const ASK_LIMIT_MS = 2_000;
/** Probes come every few seconds, from more than one place; the server is asked once in this time. */
const ANSWER_HOLDS_MS = 2_000;

/** Whether follow-ups are being worked on, for `/readyz`. */
export class Readiness {
  constructor(private readonly redactor: Redactor) {}

  private reasons: () => Promise<readonly string[]> | readonly string[] = () => ['the process is starting'];

  /** Not ready, for one reason, until something else is said. */
  notReady(reason: string): void {
    this.reasons = () => [reason];
  }

  /** Ready, as long as `reasons` answers with none. */
  readyUnless(reasons: () => Promise<readonly string[]>): void {
    this.reasons = reasons;
  }

  /** Why not, or nothing; redacted, since it is shown to whoever asks. */
  readonly check = async (): Promise<readonly string[]> => (await this.reasons()).map(this.redactor.text);
}

/** Why the server can't be reached, or nothing; it is asked at most every other second. */
export function connectionCheck(
  connection: NativeConnection,
  temporal: TemporalConfig,
): () => Promise<readonly string[]> {
  let asked: { readonly at: number; readonly answer: Promise<readonly string[]> } | undefined;
  const ask = async (): Promise<readonly string[]> => {
    try {
      await describeNamespace(connection, temporal.namespace, ASK_LIMIT_MS);
      return [];
    } catch (error) {
      return [explainTrouble(error, temporal).message];
    }
  };
  return () => {
    const now = performance.now();
    if (asked === undefined || now - asked.at > ANSWER_HOLDS_MS) asked = { at: now, answer: ask() };
    return asked.answer;
  };
}
