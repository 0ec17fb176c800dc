import type { Facts } from '../follow-up-world';
import { Case } from './case';
import { RULES, RULES_OF_UNDISTURBED } from './conduct';
import { RULES_OF_RECEIPTS } from './receipt';

/** What is wrong with a world, by everything that is known of it; empty when all is true. */
export function lies(facts: Facts): string[] {
  const found = new Case(facts);
  const rules = found.isUndisturbed ? [...RULES, ...RULES_OF_UNDISTURBED] : RULES;
  const all = [...facts.broken, ...rules.flatMap((rule) => [...rule(found)])];
  const { kind, receipt } = found.end;
  if (receipt) all.push(...RULES_OF_RECEIPTS.flatMap((rule) => [...rule(found, receipt)]));
  else if (kind !== 'terminated' && kind !== 'open') all.push('it ended without a receipt');
  return all;
}
