package models

import (
	"context"
	"log/slog"
	"path/filepath"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/configs/providers"
	"gatehouse/core"
	"gatehouse/core/llm/registry"
	"gatehouse/core/watch"
)

// A File applies PROVIDERS_FILE when it or a key that it names changes.
type File struct {
	Settings *live.Settings
	Registry *registry.Registry
	Options  registry.Options
	Prices   *Prices
	Know     func(models []string) // has metrics count them by name
	Clock    core.Clock
	Log      *slog.Logger
}

// Watch reads the file again whenever it may have changed, until ctx ends. Without
// PROVIDERS_FILE it only waits for that.
func (f *File) Watch(ctx context.Context) {
	source := f.Settings.Given().Providers()
	if source == nil {
		<-ctx.Done()
		return
	}
	w := watch.New(watch.Options{What: "providers of models", Clock: f.Clock, Log: f.Log})
	defer w.Close()
	for {
		f.Reload()
		var dirs []string // at most one for each provider and two more
		for _, file := range source.Files() {
			dirs = append(dirs, filepath.Dir(file))
		}
		if real, err := filepath.EvalSymlinks(source.Path()); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
		if w.Folders(dirs) && ctx.Err() == nil {
			continue // what changed before the watch began
		}
		if !w.Changed(ctx, watch.Anyway) {
			return
		}
	}
}

// Reload reads the file and uses it from the next turn on. A file that is not
// valid, or lacks a provider that a setting names, changes nothing: that is logged
// once, and the source's Fault until it is fixed.
func (f *File) Reload() {
	source := f.Settings.Given().Providers()
	if source == nil {
		return
	}
	was := source.Fault()
	err := f.Settings.Refresh(func(now *configs.Config) error { return f.use(source, now) })
	switch {
	case err != nil && (was == nil || was.Error() != err.Error()):
		f.Log.Error("the file of providers is invalid: the providers stay unchanged", "err", err)
	case err == nil && was != nil:
		f.Log.Info("the file of providers is in use again")
	}
}

// use applies the file's present content, if it is another one.
func (f *File) use(source *providers.Source, now *configs.Config) error {
	next, err := source.Read()
	if err != nil || next.Same(source.Now()) {
		return err
	}
	was := source.Use(next)
	err = now.CheckModels()
	var m *registry.Models
	if err == nil {
		m, err = New(now, f.Options)
	}
	if err != nil {
		source.Use(was)
		source.Refuse(err)
		return err
	}
	f.Know(m.Names)
	f.Prices.Use(next)
	f.Registry.Replace(m)
	f.Log.Info("the file of providers was read again", "providers", next.Names())
	return nil
}
