# Runs a program in the mounts of docs/deploy/systemd/berth.service, made in
# place as systemd makes them: all read-only but a state directory, a /tmp of
# its own, no homes, few devices, no capabilities, no new privileges. The change
# is made besides. Run it in a mount name space of its own.
# usage: mounts.sh CHANGE STATE UID PROGRAM ARGS...
set -e
change=$1 state=$2 uid=$3
shift 3
mount --make-rprivate /
devices=$(mktemp -d)
mount --bind "$state" "$state"
mount -t tmpfs -o mode=000,ro tmpfs /home
mount -t tmpfs -o nosuid,noexec,mode=755 tmpfs "$devices"
for d in null zero full random urandom tty; do cp -a "/dev/$d" "$devices/"; done
ln -s /proc/self/fd "$devices/fd"
mkdir "$devices/shm" "$devices/pts"
mount --move "$devices" /dev
rmdir "$devices"
mount -t tmpfs -o mode=1777 tmpfs /tmp
case $change in
none) mount -t proc -o hidepid=invisible proc /proc ;; # ProtectProc
ProtectKernelTunables)
	mount --bind /proc/sys /proc/sys
	mount -o remount,bind,ro /proc/sys
	;;
ProtectKernelLogs) mount --bind /dev/null /proc/kmsg ;;
*) exit 9 ;;
esac
mount -n -o remount,bind,ro /
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs --bounding-set -all \
	env -i PATH=/usr/bin:/bin HOME="$state" BERTH_CONFIG_DIR=/nonexistent BERTH_DATA_DIR="$state" "$@"
