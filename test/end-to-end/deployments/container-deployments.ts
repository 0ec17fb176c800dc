import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { artifactPath, type EndToEndEnvironment } from '../end-to-end-environment';
import type { ContainerEngine } from './container-engine';
import { type Deployment, forJob } from './deployment-steps';
import { readPageCommands } from './page-commands';

/** The deployments with Docker and with Docker Compose, which share the archive, the image and the folder of the key. */
export class ContainerDeployments {
  private readonly values: Readonly<Record<string, string>>;

  /** @param folder an empty folder, which stands in for the folders of the page */
  constructor(
    private readonly engine: ContainerEngine,
    private readonly environment: EndToEndEnvironment,
    private readonly folder: string,
    private readonly healthPort: number,
  ) {
    this.values = {
      '/opt/agent-follow-up': path.join(folder, 'opt'),
      '/etc/agent-follow-up': path.join(folder, 'etc'),
      'temporal.example:7233': environment.env.TEMPORAL_ADDRESS ?? '',
      'https://agents.example': environment.sandbox.baseUrl,
      '9465': String(healthPort),
    };
  }

  /** Unpacks the archive, builds the image and writes the key. */
  async install(): Promise<void> {
    const [build = '', prepareKey = ''] = this.page('Docker');
    await this.run(`cp ${artifactPath('worker')} .`);
    await this.writeKey(this.environment.sandbox.createKey());
    await this.run(build + prepareKey);
  }

  docker(): Deployment {
    const name = 'agent-follow-up-worker';
    const [, , create = '', send = ''] = this.page('Docker');
    let start = create;
    return this.deployment(name, {
      start: async () => {
        await this.run(start);
        start = `docker start ${name}`;
      },
      send,
      stop: `docker stop ${name}`,
    });
  }

  /** The first command of the page starts the images of PostgreSQL and Temporal too, so this test does not run the command. */
  compose(): Deployment {
    const [commands = ''] = this.page('Docker Compose');
    const [exports = '', , start = '', send = ''] = commands.split('\n');
    const compose = start.replace(/ up .*/, '');
    const withVariables = (command: string) => `${exports}\n${command}`;
    return this.deployment('agent-follow-up-worker-1', {
      start: () => this.run(withVariables(start)),
      send: withVariables(send),
      stop: withVariables(`${compose} stop worker`),
    });
  }

  private deployment(
    container: string,
    commands: Pick<Deployment, 'start'> & Readonly<Record<'send' | 'stop', string>>,
  ): Deployment {
    const [, rotate = ''] = readPageCommands('docs/operations.md', 'Rotating the key', this.values);
    return {
      start: commands.start,
      send: (job) => this.run(forJob(commands.send, job)),
      stop: () => this.run(commands.stop),
      kill: () => this.engine.kill(container),
      rotateKey: async (key) => {
        await this.writeKey(key);
        await this.run(rotate);
      },
      healthPort: this.healthPort,
      logs: () => this.run(`docker logs ${container} 2>&1`),
    };
  }

  private page(heading: string): string[] {
    return readPageCommands('docs/deployment.md', heading, this.values);
  }

  private run(commands: string): Promise<string> {
    return this.engine.run(commands, this.folder);
  }

  private writeKey(key: string): Promise<void> {
    return writeFile(path.join(this.folder, 'new-key'), key);
  }
}
