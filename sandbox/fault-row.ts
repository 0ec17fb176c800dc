import type { AgentJob } from '../src/core/job';
import type { ParameterTable, ParameterValues } from './fault-parameters';
import type { Reaction } from './reaction';

/** The two operations of the contract. */
export const OPERATIONS = ['get', 'message'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The request that a fault reacts to. */
export interface FaultContext {
  /** Epoch milliseconds. */
  readonly now: number;
  /** The address of the same request at this origin, and under another name of this machine: another origin. */
  readonly addresses: { readonly same: string; readonly other: string };
}

/** What an alteration may look at. */
export interface AlterContext {
  /** Epoch milliseconds. */
  readonly now: number;
  /** How many answers this fault has altered before. */
  readonly struck: number;
  /** True when the fault ends by itself after a number of answers. */
  readonly limited: boolean;
  /** The job just before the last message, and when that came. */
  readonly beforeLastMessage: { readonly before: AgentJob; readonly at: number } | undefined;
  /** Since when the job has its terminal status; null while it is active. */
  readonly settledSince: number | null;
}

/** Answers in the contract's place. */
export interface Instead {
  readonly kind: 'instead';
  /**
   * What has become of a message by then: its body was not read (`unread`), it was read and not processed (`no`), it
   * was processed (`yes`), or as the parameter `processed` says. A read of the job is answered at once in any case.
   */
  readonly processed: 'unread' | 'no' | 'yes' | 'parameter';
  readonly react: (values: ParameterValues, context: FaultContext) => Reaction;
}

/** Changes the job in a good answer; the same object back means that there was nothing to change. */
export interface Alter {
  readonly kind: 'alter';
  readonly alter: (job: AgentJob, values: ParameterValues, context: AlterContext) => AgentJob;
}

/** `delay` and `hold` wait, `turn` lets the turn take no time, `key` lets the caller's key expire. */
export type FaultEffect = Instead | Alter | { readonly kind: 'delay' | 'hold' | 'turn' | 'key' };

export interface FaultRow {
  /** One line for people. */
  readonly meaning: string;
  /** The operations on which it can act, and does unless it is told otherwise. */
  readonly operations: readonly Operation[];
  /** The first one may be given as `NAME=value`. */
  readonly parameters: ParameterTable;
  readonly effect: FaultEffect;
}
