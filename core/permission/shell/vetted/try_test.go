package vetted
import ("testing";"os";"strings";"fmt")
func TestTry(t *testing.T){
 b,_:=os.ReadFile("../../testdata/harmless.txt")
 for _,l:=range strings.Split(string(b),"\n"){ if l==""||l[0]=='#'{continue}
  l=strings.ReplaceAll(l,"⏎","\n")
  r:=Read(l); fmt.Printf("%v\t%q %v\n", len(r.Why)==0, l, r.Why) }
}
