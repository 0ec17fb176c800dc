import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import dashboard from '../../deploy/grafana/follow-ups.json';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url: string };
}

export const ALERTS_FILE = path.join(__dirname, '../../deploy/prometheus/alerts.yaml');
const rules = parse(readFileSync(ALERTS_FILE, 'utf8')) as {
  groups: { rules: (Alert | { record: string })[] }[];
};
export const ALERTS = rules.groups.flatMap(({ rules }) => rules).filter((rule) => 'alert' in rule);

const panels = dashboard.panels.flatMap(({ targets }) => targets);

/** The metrics that the alerts and the dashboard query, with the patterns that the labels must match in any namespace. */
export const SELECTORS = [...ALERTS, ...panels].flatMap(({ expr }) =>
  [...expr.matchAll(/\b((?:agent_follow_up|temporal)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, metric = '', selector = '']) => ({
      metric,
      labels: [...selector.matchAll(/(\w+)[=!]~?"([^"$]*)"/g)].map(
        ([, label = '', text = '']) => [label, new RegExp(`^(?:${text})$`)] as const,
      ),
    }),
  ),
);
