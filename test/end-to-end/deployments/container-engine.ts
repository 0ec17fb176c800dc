import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { eventually } from '../../../tools/lib/eventually';
import { mustRun, Program } from '../../harness/program';

/** The program that stands in for Docker: buildah and podman, with the storage and the limits of a test. */
const DOCKER = `#!/bin/sh -eu
command=$1
shift
case $command in
  build)
    # Two workers of this machine can't listen at the same ports.
    sed -i "s/:9464/:$METRICS_PORT/; s/:9465/:$HEALTH_PORT/" deploy/Dockerfile deploy/compose.yaml
    exec buildah $STORAGE bud --isolation chroot --pull-never "$@" ;;
  run)
    exec podman $STORAGE $RUNTIME run --network host --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 "$@" ;;
  compose)
    file=$2
    shift 2
    exec "$COMPOSE" --file "$file" --file "$COMPOSE_OVERRIDE" "$@" ;;
  *)
    exec podman $STORAGE $RUNTIME "$command" "$@" ;;
esac
`;

/** The part of the official image's program that matters: the program starts the command as the first process. */
const ENTRYPOINT = `#!/bin/sh
set -e
exec "$@"
`;

/** The settings that replace parts of deploy/compose.yaml. Podman has the same limits as for the image. */
const composeOverride = (temporalAddress: string) => `
services:
  worker:
    network_mode: host
    environment: { TEMPORAL_ADDRESS: '${temporalAddress}' }
    depends_on: !reset {}
    ulimits: { nofile: 1024, nproc: 4096 }
`;

export interface ContainerEngineOptions {
  /** An empty folder for images, containers and programs. */
  readonly folder: string;
  readonly healthPort: number;
  readonly metricsPort: number;
  /** The Temporal server that stands in for the servers of deploy/compose.yaml. */
  readonly temporalAddress: string;
}

/** Containers in the storage of a test. Shell commands of the engine find the program \`docker\`. */
export class ContainerEngine {
  private readonly services: Program[] = [];

  private constructor(
    private readonly folder: string,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  static async open(options: ContainerEngineOptions): Promise<ContainerEngine> {
    const { folder } = options;
    const inFolder = (name: string) => path.join(folder, name);
    await mkdir(inFolder('bin'));
    await writeFile(inFolder('bin/docker'), DOCKER);
    await chmod(inFolder('bin/docker'), 0o755);
    await writeFile(inFolder('override.yaml'), composeOverride(options.temporalAddress));
    return new ContainerEngine(folder, {
      ...process.env,
      PATH: `${inFolder('bin')}:${process.env.PATH ?? ''}`,
      STORAGE: `--root ${inFolder('storage')} --runroot ${inFolder('run')}`,
      RUNTIME: '--runtime runc --cgroup-manager cgroupfs',
      BUILDAH_ISOLATION: 'chroot',
      HEALTH_PORT: String(options.healthPort),
      METRICS_PORT: String(options.metricsPort),
      COMPOSE_OVERRIDE: inFolder('override.yaml'),
      DOCKER_HOST: `unix://${inFolder('docker.sock')}`,
      DOCKER_BUILDKIT: '0',
    });
  }

  /** Runs shell commands in a folder. @throws Error with the output if a command fails */
  run(commands: string, cwd = this.folder): Promise<string> {
    return mustRun('sh', ['-euc', commands], { cwd, env: this.env });
  }

  /**
   * Makes an image from a Debian folder and a Node executable, with the name of the first line FROM of a Dockerfile. The official
   * image has Node at the same path.
   */
  async importBaseImage(dockerfile: string, debian: string, node: string): Promise<void> {
    const [, name = ''] = /^FROM (\S+)$/m.exec(await readFile(dockerfile, 'utf8')) ?? [];
    const additions = path.join(this.folder, 'additions/usr/local/bin');
    await mkdir(additions, { recursive: true });
    await writeFile(path.join(additions, 'docker-entrypoint.sh'), ENTRYPOINT, { mode: 0o755 });
    const unused = ['./var/cache/*', './var/lib/apt/*', './usr/share/doc/*', './usr/share/locale/*'];
    await this.run(`
      cp ${node} ${additions}/node
      tar --create --one-file-system ${unused.map((each) => `--exclude='${each}'`).join(' ')} \\
        --directory ${debian} . --directory ${this.folder}/additions ./usr/local/bin/node ./usr/local/bin/docker-entrypoint.sh > base.tar
      podman $STORAGE import --change 'ENTRYPOINT ["docker-entrypoint.sh"]' --change 'CMD ["node"]' \\
        --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' base.tar docker.io/library/${name}
      rm base.tar`);
  }

  /** Starts the Docker API for Docker Compose. @param program the path of Docker Compose */
  async enableCompose(program: string): Promise<void> {
    this.env.COMPOSE = program;
    const service = new Program(
      'sh',
      ['-euc', 'exec podman $STORAGE $RUNTIME system service --time 0 "$DOCKER_HOST"'],
      {
        env: this.env,
      },
    );
    this.services.push(service);
    await eventually('podman listens', () => this.run('test -S "${DOCKER_HOST#unix://}" && echo listening'));
  }

  /** Runs the health check of a container every second. Podman itself uses systemd for this, which this machine may not have. */
  startHealthChecks(container: string): void {
    const check = `docker healthcheck run ${container} || true`;
    this.services.push(new Program('sh', ['-c', `while sleep 1; do ${check}; done`], { env: this.env }));
  }

  /** Kills the first process of a container, and waits for its end. The restart policy of the container decides about a restart. */
  async kill(container: string): Promise<void> {
    const pid = Number(await this.run(`docker inspect --format '{{.State.Pid}}' ${container}`));
    process.kill(pid, 'SIGKILL');
    await eventually(`process ${pid} has ended`, () =>
      readFile(`/proc/${pid}/stat`).then(
        () => false,
        () => true,
      ),
    );
  }

  /** Removes all containers and images. */
  async close(): Promise<void> {
    for (const service of this.services) service.signal('SIGTERM');
    // A podman that still runs would create the storage again after the test has removed its folder.
    await Promise.all(this.services.map((service) => service.waitForEnd()));
    await this.run('podman $STORAGE $RUNTIME rm --all --force --time 0');
    // The monitor of a health check ends five minutes later, and would then create the storage again.
    await this.run(`pkill --signal KILL --full '[c]onmon .*${this.folder}' || true`);
  }
}
