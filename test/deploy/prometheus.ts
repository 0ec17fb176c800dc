import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { freePorts } from '../../dev/free-ports';
import { spawnTethered, type TetheredProcess } from '../../dev/tether';
import { eventually } from '../harness/eventually';

interface FiringAlert {
  readonly state: 'pending' | 'firing';
  readonly labels: { readonly alertname: string };
  readonly annotations: { readonly summary: string };
}

/** Prometheus as a process of its own (Debian's package), which scrapes every second. */
export class Prometheus {
  private constructor(
    private readonly process: TetheredProcess,
    private readonly url: string,
  ) {}

  /** Starts it in a folder, with the text of a rule file, for the metrics of a worker at `HOST:PORT`. */
  static async start(folder: string, rules: string, target: string): Promise<Prometheus> {
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      scrape_configs: [{ job_name: 'agent-follow-up', static_configs: [{ targets: [target] }] }],
    };
    await writeFile(path.join(folder, 'rules.yaml'), rules);
    // JSON is YAML.
    await writeFile(path.join(folder, 'prometheus.yml'), JSON.stringify(config));
    const [port = 0] = await freePorts(1);
    const address = `127.0.0.1:${port}`;
    const flags = [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=${address}`,
      '--log.level=error',
      // A look back of 5 min would let a stopped worker seem to be there; a scrape that fails marks its series as stale.
      '--query.lookback-delta=15s',
    ];
    const env = { PATH: process.env.PATH };
    const server = await spawnTethered('prometheus', flags, { env, stdout: 'ignore' });
    await eventually('Prometheus is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
    return new Prometheus(server, `http://${address}`);
  }

  /** The alerts that fire, by name. */
  async firing(): Promise<Map<string, FiringAlert>> {
    const { alerts } = (await this.ask('alerts')) as { alerts: FiringAlert[] };
    const firing = alerts.filter(({ state }) => state === 'firing');
    return new Map(firing.map((alert) => [alert.labels.alertname, alert]));
  }

  /** Evaluates an expression. @throws Error for one that Prometheus does not take */
  async query(expression: string): Promise<unknown[]> {
    const answer = await this.ask(`query?query=${encodeURIComponent(expression)}`);
    return (answer as { result: unknown[] }).result;
  }

  /** Every metric that was ever scraped. */
  async names(): Promise<string[]> {
    return (await this.ask('label/__name__/values')) as string[];
  }

  async stop(): Promise<void> {
    await this.process.stop();
  }

  private async ask(what: string): Promise<unknown> {
    const response = await fetch(`${this.url}/api/v1/${what}`);
    const { data, error } = (await response.json()) as { data: unknown; error?: string };
    if (error !== undefined) throw new Error(`Prometheus refuses ${what}: ${error}`);
    return data;
  }
}
