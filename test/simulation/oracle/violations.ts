import type { FollowUpWorld } from '../follow-up-world';
import { buildCase } from './case';
import { RULES, UNDISTURBED_RULES } from './conduct';
import { RECEIPT_RULES } from './receipt';

/** Returns one sentence for each violation of a guarantee in a played world; empty if the world satisfies all guarantees. */
export function findViolations(world: FollowUpWorld): string[] {
  const found = buildCase(world);
  const rules = found.isUndisturbed ? [...RULES, ...UNDISTURBED_RULES] : RULES;
  const all = [...world.failures, ...rules.flatMap((rule) => [...rule(found)])];
  const { kind, receipt } = found.end;
  if (receipt) all.push(...RECEIPT_RULES.flatMap((rule) => [...rule(found, receipt)]));
  else if (kind !== 'terminated' && kind !== 'open') all.push('the follow-up ended without a receipt');
  return all;
}
