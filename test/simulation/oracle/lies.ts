import type { FollowUpWorld } from '../follow-up-world';
import { caseOf } from './case';
import { RULES, RULES_OF_UNDISTURBED } from './conduct';
import { RULES_OF_RECEIPTS } from './receipt';

/** What is wrong with a world, by everything that is known of it; empty when all is true. */
export function lies(world: FollowUpWorld): string[] {
  const found = caseOf(world);
  const rules = found.isUndisturbed ? [...RULES, ...RULES_OF_UNDISTURBED] : RULES;
  const all = [...world.broken, ...rules.flatMap((rule) => [...rule(found)])];
  const { kind, receipt } = found.end;
  if (receipt) all.push(...RULES_OF_RECEIPTS.flatMap((rule) => [...rule(found, receipt)]));
  else if (kind !== 'terminated' && kind !== 'open') all.push('it ended without a receipt');
  return all;
}
