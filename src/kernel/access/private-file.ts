interface FileStat {
  readonly mode: number;
  readonly uid: number;
}

/**
 * Whether somebody beside this process may reach a file that holds a secret.
 *
 * Kubernetes mounts Secrets, and packages install files, as root's with a group for the service: 0440. Nobody joins that group
 * without root, so such a file is as private as one of our own with 0400.
 */
export function othersMayReach({ mode, uid }: FileStat, ownUid: number | undefined): boolean {
  if ((mode & 0o077) === 0) return false;
  const isOfRootForOurGroup = uid === 0 && ownUid !== 0 && (mode & 0o037) === 0;
  return !isOfRootForOurGroup;
}

/** As people write it: 0640. */
export const modeText = (mode: number): string => (mode & 0o777).toString(8).padStart(4, "0");
