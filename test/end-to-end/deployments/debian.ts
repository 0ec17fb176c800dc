import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { mustRun } from '../../harness/program';
import { ROOT } from '../../harness/worker-process';

/** The Debian packages that contain the programs that the tests of the deployments run. .ci/run installs them. */
const PACKAGES = {
  debootstrap: 'debootstrap',
  'systemd-nspawn': 'systemd-container',
  nsenter: 'util-linux',
  buildah: 'buildah',
  podman: 'podman',
  runc: 'runc',
  pkill: 'procps',
} as const;

/** @throws Error that names each missing requirement */
export async function requirePrograms(): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new Error('The tests of the deployments boot systemd and run containers. Run them as root.');
  const missing: string[] = [];
  for (const [program, name] of Object.entries(PACKAGES))
    await mustRun('sh', ['-c', `command -v ${program}`]).catch(() => missing.push(name));
  if (missing.length > 0)
    throw new Error(
      `The tests of the deployments need these packages: apt-get install --no-install-recommends ${missing.join(' ')}`,
    );
}

/**
 * The packages of each release. `bullseye` has systemd 247, which is the oldest supported version. `trixie` is the base of the
 * image, and has Docker Compose. Node 26 needs libatomic1. The official image has this package too.
 */
const RELEASES = {
  bullseye: 'systemd,systemd-sysv,dbus,curl,libatomic1',
  trixie: 'systemd,systemd-sysv,dbus,curl,libatomic1,docker-compose',
} as const;
type DebianRelease = keyof typeof RELEASES;

/** The path of Docker Compose in the folder of `trixie`. */
export const DOCKER_COMPOSE = 'usr/libexec/docker/cli-plugins/docker-compose';
/** Installs a minimal Debian with systemd into a folder of .cache, unless the folder exists, and returns the folder. */
export async function installDebian(release: DebianRelease): Promise<string> {
  const folder = path.join(ROOT, '.cache/debian', release);
  if (existsSync(folder)) return folder;
  const partial = `${folder}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  const include = `--include=${RELEASES[release]}`;
  await mustRun('debootstrap', ['--variant=minbase', include, release, partial, ...(await mirror())]);
  await rename(partial, folder);
  return folder;
}

/** Returns the mirror from which this machine installs Debian packages. Without one, debootstrap uses its default mirror. */
async function mirror(): Promise<string[]> {
  const uris = await mustRun('apt-get', [
    ...['indextargets', '--format', '$(REPO_URI)'],
    ...['Created-By: Packages', 'Origin: Debian', 'Label: Debian'],
  ]);
  return uris.split('\n').slice(0, 1).filter(Boolean);
}
