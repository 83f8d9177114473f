export const INSTALL_KIND = "install";
export const installKey = (id: string) => ({ kind: INSTALL_KIND, id });

/** Whoever takes a node out says nothing of its data: that it is gone has a verb of its own. */
export const CONFIRM_ERASED = "confirm_erased";
