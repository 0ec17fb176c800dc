import { createHash } from 'node:crypto';
import { checkRequest } from '../contract/check-request';
import { MEMO_PROMPT_DIGEST } from '../contract/names';
import type { FollowUpPlan } from '../contract/request';
import { optionTexts } from '../contract/request-options';

export type Comparison =
  /** `differences`: options that were asked for now and are not those of the existing follow-up, in words. */
  | { readonly samePrompt: true; readonly differences: readonly string[] }
  | { readonly samePrompt: false }
  /** The input of the existing follow-up can't be read. */
  | { readonly samePrompt: 'unknown' };

/** Compares a request with the input of the follow-up that has its name. Pure. */
export function compareRequests(wanted: FollowUpPlan, existingInput: unknown): Comparison {
  const existing = existingInput as { prompt?: unknown } | null | undefined;
  if (typeof existing !== 'object' || typeof existing?.prompt !== 'string') return { samePrompt: 'unknown' };
  if (existing.prompt !== wanted.prompt) return { samePrompt: false };
  const checked = checkRequest(existing);
  // An input that was refused has no options to compare: its follow-up ended as `InvalidRequest`.
  return { samePrompt: true, differences: checked.ok ? optionDifferences(wanted, checked.plan) : [] };
}

export function promptDigest(prompt: string): string {
  return createHash('sha256').update(prompt).digest('hex');
}

/** As {@link compareRequests}, by the memo alone: the options of the existing follow-up are not known by it. */
export function compareDigest(
  wanted: FollowUpPlan,
  memo: Readonly<Record<string, unknown>> | undefined,
): Comparison {
  const digest = memo?.[MEMO_PROMPT_DIGEST];
  if (typeof digest !== 'string') return { samePrompt: 'unknown' };
  return digest === promptDigest(wanted.prompt)
    ? { samePrompt: true, differences: [] }
    : { samePrompt: false };
}

function optionDifferences(wanted: FollowUpPlan, existing: FollowUpPlan): string[] {
  const asked = new Map(optionTexts(wanted));
  return optionTexts(existing)
    .filter(([option, text]) => asked.get(option) !== text)
    .map(([option, text]) => `${option} is ${text} there, not ${asked.get(option) ?? ''}`);
}
