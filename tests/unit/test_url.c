#include "link_rig.h"
int main(void){return 0;}
