import type { FollowUpWorld } from '../follow-up-world';
import { buildCase } from './case';
import { RULES, UNDISTURBED_RULES } from './conduct';
import { RECEIPT_RULES } from './receipt';

/** What is wrong with a world, by everything that is known of it; empty when all is true. */
export function findViolations(world: FollowUpWorld): string[] {
  const found = buildCase(world);
  const rules = found.isUndisturbed ? [...RULES, ...UNDISTURBED_RULES] : RULES;
  const all = [...world.failures, ...rules.flatMap((rule) => [...rule(found)])];
  const { kind, receipt } = found.end;
  if (receipt) all.push(...RECEIPT_RULES.flatMap((rule) => [...rule(found, receipt)]));
  else if (kind !== 'terminated' && kind !== 'open') all.push('it ended without a receipt');
  return all;
}
