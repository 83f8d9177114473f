export const INSTALL_KIND = "install";
export const installKey = (id: string) => ({ kind: INSTALL_KIND, id });
