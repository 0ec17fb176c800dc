import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import dashboard from '../../deploy/grafana/follow-ups.json';
import { ALERTS_FILE } from '../../scripts/prometheus-rule';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url: string };
}

const RULES = readFileSync(ALERTS_FILE, 'utf8');
export const ALERTS = (parse(RULES) as { groups: { rules: Alert[] }[] }).groups.flatMap(({ rules }) => rules);
export const PANELS = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

/** The metrics of this project and of the SDK that an expression names. */
export function metricsIn(expression: string): string[] {
  return expression.match(/\b(?:agent_follow_up|temporal)_\w+/g) ?? [];
}

/** A window holds some scrapes, of which there is one a second. */
const LONGEST_S = 15;

/** The rules with shorter times, for tests: a minute is a second, and nothing lasts longer than 15. What is compared stays as it is. */
export const HURRIED = RULES.replaceAll(
  /(\[|offset | for: )(\d+)([mh])\b/g,
  (_, before: string, count: string, unit: string) =>
    `${before}${Math.min(LONGEST_S, Number(count) * (unit === 'h' ? 60 : 1))}s`,
).replaceAll(/ \* 60\b/g, '');
