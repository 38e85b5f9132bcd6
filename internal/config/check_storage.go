package config

// checkStorage warns of settings of storage, and of groups, which need it, that
// do nothing as things are, or that weaken what an acknowledgement means.
func (l *loader) checkStorage() {
	s := &l.cfg.Storage
	if s.Dir == "" {
		plain := newLoader(new(Config))
		plain.defaults()
		for _, setting := range append(s.settings(), l.cfg.Groups.settings()...) {
			byDefault := plain.byKey[setting.Key]
			if source, given := l.source[setting.Key]; given && byDefault.derive == nil && setting.Text() != byDefault.Text() {
				l.warn("%s (%s) has no effect without durable_storage_dir: everything is in memory", setting.Key, source)
			}
		}
		return
	}
	if source, given := l.source["durable_fsync_interval_ms"]; given && s.Fsync == FsyncOnCommit && l.origin("durable_fsync_mode") == "default" {
		l.warn("durable_fsync_interval_ms (%s) has no effect: durable_fsync_mode is on_commit; ask for periodic by its name", source)
	}
	if s.Fsync != FsyncOnCommit {
		l.warn("durable_fsync_mode is %s (%s): a power cut can lose writes that were acknowledged", s.Fsync, l.origin("durable_fsync_mode"))
	}
}
