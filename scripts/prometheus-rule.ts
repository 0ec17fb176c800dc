/** Writes the alerts once more as a `PrometheusRule` for the Prometheus Operator. Run it with `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const FOLDER = path.join(__dirname, '../deploy/prometheus');
export const ALERTS_FILE = path.join(FOLDER, 'alerts.yaml');
export const RULE_FILE = path.join(FOLDER, 'prometheus-rule.yaml');

const HEAD = `# Made of alerts.yaml by \`npm run docs\`. Your Prometheus may ask for labels: spec.ruleSelector says which.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: agent-follow-up-worker
  labels: { app.kubernetes.io/name: agent-follow-up-worker }
spec:
`;

/** The groups of the alerts are the specification of the rule. */
export function prometheusRule(): string {
  const alerts = readFileSync(ALERTS_FILE, 'utf8');
  const groups = alerts.slice(alerts.indexOf('groups:'));
  return HEAD + groups.replace(/^(?=.)/gm, '  ');
}

if (require.main === module) writeFileSync(RULE_FILE, prometheusRule());
